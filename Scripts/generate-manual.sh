#!/bin/sh
# Writes the manual page of a built carpack into a folder: generate-manual.sh COMMAND FOLDER
#
# The generator comes with swift-argument-parser, which is checked out here already. Its plugin would build this package once more, in
# another way than it is released; so the generator is built by itself and shown the command that is there.
set -eu
command=$1
folder=$2

log=$(mktemp)
trap 'rm -f "$log"' EXIT
swift build --package-path .build/checkouts/swift-argument-parser --scratch-path .build/argument-parser \
  --product generate-manual >"$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
.build/argument-parser/debug/generate-manual "$command" --output-directory "$folder" --section 1
