# What a symbol is called in deploy/dist/order.txt: without what differs from compiler to compiler.

function plain_name(symbol) {
    sub(/\.llvm\.[0-9]+$/, "", symbol)
    # The hash of the older mangling, and those of crates in the newer one.
    sub(/17h[0-9a-f]+E$/, "", symbol)
    gsub(/Cs[0-9A-Za-z]+_/, "C", symbol)
    return symbol
}

function plain_size(hexadecimal) {
    sub(/^0+/, "", hexadecimal)
    return hexadecimal
}
