/** Where Sepal lives. The server says it in `<base href>`, so that it also works below a prefix. */

export function basePath(): string {
  return new URL('.', document.baseURI).pathname
}

export function address(path: string): string {
  return new URL(path, document.baseURI).href
}
