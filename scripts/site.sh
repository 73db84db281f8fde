#!/usr/bin/env bash
# The documentation as a site that needs no network, in build/site/html. Fails at a link or an anchor that leads nowhere, and at
# a page of docs/ that the menu in mkdocs.yml lacks. Needs PyPI the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/site/tools
if ! "$tools/bin/mkdocs" --version >/dev/null 2>&1; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install -q --disable-pip-version-check mkdocs-material
fi
python3 scripts/site.py --check
python3 scripts/site.py build/site/pages
NO_MKDOCS_2_WARNING=1 "$tools/bin/mkdocs" build --strict >build/site/log 2>&1 || { grep -v "^INFO" build/site/log >&2; exit 1; }  # --quiet would hide warnings from --strict
if leak=$(grep -rlE '(src|href)="https?://[^"]*\.(js|css|woff2?)"' build/site/html --include='*.html'); then
  echo "site: error: pages load files from elsewhere: $leak" >&2 && exit 1
fi
echo "build/site/html/index.html: $(find build/site/html -name '*.html' | wc -l) pages"
