#!/usr/bin/env bash
# Everything of a release in one folder, with its checksums and a signature.
#   scripts/release.sh [--only PARTS] [--build FOLDER] [--key SECRET_KEY] [OUTPUT_FOLDER]       default: build/release_files
# PARTS, separated by commas (default: all): `source` (an archive of the last commit), `portable` (one executable), `deb`,
# `wheel`, `plugin` (a wheel), `site` (the documents), `sbom`. FOLDER is the build of `deb`, wheels and `sbom` (default:
# build/release; made if it is not there). SHA256SUMS lists all files. With a secret key of minisign (`minisign -G`, an
# Ed25519 signature as libsodium makes it) SHA256SUMS.minisig signs that list, and is checked with the public key beside it
# (SECRET_KEY without its ending, .pub). Without one the release is not signed, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=source,portable,deb,wheel,plugin,site,sbom build=build/release key=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --only) parts=$2 ;;
    --build) build=$2 ;;
    --key) key=$2 ;;
    *) echo "release: error: $1: no such option" >&2 && exit 2 ;;
  esac
  shift 2
done
output=$(realpath -m "${1:-build/release_files}")
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "release: warning: there are changes that no commit has; the source archive lacks them" >&2
rm -rf "$output" && mkdir -p "$output"

part_source() { git archive --format=tar --prefix="kiln-$version/" HEAD | gzip -9n >"$output/kiln-$version.tar.gz"; }
part_portable() {
  scripts/portable.sh
  cp build/portable/kiln.xz "$output/kiln-$version-x86_64-linux.xz"
}
part_deb() { scripts/deb.sh "$build" "$output/deb" && mv "$output"/deb/*.deb "$output/" && rmdir "$output/deb"; }
part_wheel() { scripts/wheel.sh "$build" "$output"; }
part_plugin() { scripts/onnxruntime_wheel.sh "$build" "$output"; }
part_site() {
  scripts/site.sh
  tar c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --transform "s,^html,kiln-$version-site," -C build/site html | gzip -9n >"$output/kiln-$version-site.tar.gz"
}
part_sbom() {
  [ -f "$build/tools/kiln" ] || scripts/build.sh "$(basename "$build")"
  scripts/sbom.py "$build" -o "$output/kiln-$version.spdx.json"
}
for part in ${parts//,/ }; do
  [ "$(type -t "part_$part")" = function ] || { echo "release: error: $part: no such part" >&2 && exit 2; }
  "part_$part"
done

cd "$output"
sums=$(LC_ALL=C && export LC_ALL && sha256sum -- *)
printf '%s\n' "$sums" >SHA256SUMS
sha256sum --quiet -c SHA256SUMS
if [ -n "$key" ]; then
  command -v minisign >/dev/null || { echo "release: error: minisign is missing (Debian: minisign)" >&2 && exit 1; }
  minisign -S -s "$key" -m SHA256SUMS -t "kiln $version" >/dev/null
  minisign -V -q -p "${key%.*}.pub" -m SHA256SUMS
  echo "signed    SHA256SUMS.minisig"
else
  echo "signed    no: give --key"
fi
ls -l
