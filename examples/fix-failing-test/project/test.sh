#!/bin/sh
# Tests convert.sh. Exits 1 when anything is wrong.
failed=0
check() {
    got=$(sh convert.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok: $1 C is $2 F"
    else
        echo "FAIL: $1 C: expected $2, got $got" >&2
        failed=1
    fi
}
check 0 32
check 100 212
check -40 -40
exit $failed
