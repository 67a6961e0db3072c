limit=$1 ceiling=$2
cd /workspace || exit
# Whoever forbids even itself to look could hide any amount.
find . -type d ! -perm -700 -execdir chmod u+rwx {} \;
if [ -n "$(find . -mindepth 256 -maxdepth 256 -type d -print -quit)" ]; then
    echo deep
    find . -mindepth 256 -maxdepth 256 -type d -prune -execdir rm -rf -- {} +
fi
# How much was changed last in which second; then the one from which on it is too much.
since=$(
    find . -mindepth 1 -printf '%C@ %b\n' |
        awk '{ sub(/[.].*/, "", $1); bytes[$1] += $2 * 512 + 512 }
             END { for (second in bytes) printf "%s %.0f\n", second, bytes[second] }' |
        sort -n |
        awk -v limit="$limit" -v ceiling="$ceiling" '
            { all += $2; if (all > limit && since == "") since = $1 }
            END { if (all > ceiling) print since }'
)
if [ -n "$since" ]; then
    echo large
    find . -mindepth 1 -depth -newerct "@$((since - 1)).999999999" \( ! -type d -o -empty \) -delete
fi
