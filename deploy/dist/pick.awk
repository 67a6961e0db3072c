# From deploy/dist/order.txt and a list of symbols (`nm --print-size`): the rank and the symbol of each
# function that has a place. Read after names.awk.
#
# Many functions of one generic function have one name: of those with several, only the ones with a
# size that is listed are meant.

FILENAME == ARGV[1] {
    if ($0 !~ /^#/) {
        rank[$2, $1] = FNR
        if (!($2 in first)) first[$2] = FNR
    }
    next
}
NF == 4 && $3 ~ /^[tTwW]$/ {
    name[$4] = plain_name($4)
    size[$4] = plain_size($2)
    same[name[$4]]++
}
END {
    for (symbol in name) {
        called = name[symbol]
        if ((called, size[symbol]) in rank)
            print rank[called, size[symbol]], symbol
        else if (called in first && same[called] <= 3)
            print first[called], symbol
    }
}
