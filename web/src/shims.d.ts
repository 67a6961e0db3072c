/** Written by the build plugin of Nuxt UI from the icons that the sources name. */
declare module 'virtual:nuxt-ui-icons' {
  export interface BundledIcon {
    body: string
    width?: number
    height?: number
  }
  export function init(register: (name: string, data: BundledIcon) => boolean): void
}
