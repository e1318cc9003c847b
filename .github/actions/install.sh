#!/bin/sh
# install.sh VERSION FOLDER [SHA256]: puts the released program into a folder and prints its path. The archive must have the
# checksum of the release, and the one given.
set -eu

version=${1#v}
folder=$2
wanted=$(printf %s "${3:-}" | tr -d '[:space:]')
wanted=${wanted#sha256:}
releases=${CUEGATE_RELEASES:-https://github.com/cuegate/cuegate/releases/download}

fail() {
  echo "error: $1" >&2
  echo "hint: $2" >&2
  exit 1
}

libc=gnu
if ldd --version 2>&1 | grep -qi musl; then libc=musl; fi
case "$(uname -s) $(uname -m)" in
  "Linux x86_64") target=x86_64-unknown-linux-$libc ;;
  "Linux aarch64") target=aarch64-unknown-linux-$libc ;;
  *) fail "there is no cuegate for $(uname -s) on $(uname -m)" "use a runner with Linux on x86-64 or arm64" ;;
esac
name=cuegate-$version-$target

mkdir -p "$folder"
download() {
  curl --fail --location --silent --show-error --retry 3 --max-time 300 --output "$folder/$1" "$releases/v$version/$1" ||
    fail "failed to download $1 of cuegate $version" "check \`version\`, and whether this runner may reach $releases"
}
download SHA256SUMS
download "$name.tar.gz"

sum=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$folder/SHA256SUMS")
if [ -z "$sum" ]; then
  fail "SHA256SUMS of cuegate $version does not name $name.tar.gz" "check \`version\`"
fi
for expected in "$sum" ${wanted:+"$wanted"}; do
  echo "$expected  $folder/$name.tar.gz" | sha256sum -c - > /dev/null 2>&1 ||
    fail "$name.tar.gz does not have the checksum $expected" "it was changed on the way, or is not the release that you pinned"
done
tar -xzf "$folder/$name.tar.gz" -C "$folder"
rm "$folder/$name.tar.gz" "$folder/SHA256SUMS"
"$folder/$name/cuegate" --version >&2 || fail "$name does not start here" "install git 2.31 or newer, and glibc 2.28 or newer"
echo "$folder/$name/cuegate"
