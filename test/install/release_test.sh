#!/usr/bin/env bash
# A release's source archive, bill of materials, checksums and signature: release_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1 build=$2
git -C "$source" rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "not tried: $source is not a clone of the repository" && exit 77; }
command -v minisign >/dev/null || { echo "not tried: minisign is missing (scripts/setup.sh installs it)" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
minisign -G -W -f -s "$folder/release.key" -p "$folder/release.pub" >/dev/null
for i in 1 2; do
  "$source/scripts/release.sh" --only source,sbom --build "$build" --key "$folder/release.key" "$folder/$i" >"$folder/log"
done
diff -r -x SHA256SUMS.minisig "$folder/1" "$folder/2"
cd "$folder/1"
tar tzf kiln-*.tar.gz >"$folder/list" && grep -q 'kiln-[0-9.]*/CMakeLists.txt' "$folder/list"
python3 - kiln-*.spdx.json <<'END_OF_PYTHON'
import json, sys
bill = json.load(open(sys.argv[1]))
ids = {e["SPDXID"] for e in bill["packages"] + bill["files"]} | {"SPDXRef-DOCUMENT"}
assert len(ids) == len(bill["packages"]) + len(bill["files"]) + 1, "an identifier is there twice"
for r in bill["relationships"]:
    assert {r["spdxElementId"], r["relatedSpdxElement"]} <= ids, r
names = {p["name"] for p in bill["packages"]}
assert {"kiln", "BLAKE3", "libzstd1", "libc6"} <= names, names
unknown = [p["name"] for p in bill["packages"] if p["licenseDeclared"] == "NOASSERTION"]
assert not unknown, f"scripts/sbom.py knows no licence of {unknown}"
assert "./tools/kiln" in {f["fileName"] for f in bill["files"]}
END_OF_PYTHON
# What was changed after signing is noticed: a file by its checksum, a checksum by the signature.
echo more >>"$(ls kiln-*.tar.gz)"
if sha256sum --quiet -c SHA256SUMS 2>/dev/null; then echo "a changed file was not noticed" && exit 1; fi
sha256sum kiln-* >SHA256SUMS
if minisign -V -q -p "$folder/release.pub" -m SHA256SUMS 2>/dev/null; then echo "changed checksums were not noticed" && exit 1; fi
if "$source/scripts/release.sh" --only nothing "$folder/3" 2>/dev/null; then echo "an unknown part was accepted" && exit 1; fi
echo "two releases have the same bytes; changes after signing are noticed"
