#!/bin/sh
# Packs an account of Fixtures/, and looks at it in the browser: demo-view.sh CARPACK CARPACK-SERVE
set -eu
carpack=$1
CARPACK_SERVE=$2
export CARPACK_SERVE
fixtures=$(cd "$(dirname "$0")/../Fixtures" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 0' INT TERM

archive=$folder/alice.example.com.car.zst
account=$fixtures/alice
"$carpack" pack -q "$account/alice.car" --blobs "$account/blobs" --did-document "$account/did-document.json" \
  --plc-log "$account/plc-audit-log.json" -o "$archive"
"$carpack" pack -q "$account/alice-later.car" -o "$archive"
echo "\$ carpack view alice.example.com.car.zst"
"$carpack" view "$archive"
