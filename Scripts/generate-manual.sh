#!/bin/sh
# Writes the manual pages of a built carpack into a folder: generate-manual.sh COMMAND FOLDER
#
# The generator comes with swift-argument-parser, which is checked out here already. Its plugin would build this package once more, in
# another way than it is released; so the generator is built by itself and shown the command that is there.
set -eu
command=$1
folder=$2

swift build --quiet --package-path .build/checkouts/swift-argument-parser --scratch-path .build/argument-parser \
  --product generate-manual
.build/argument-parser/debug/generate-manual "$command" --output-directory "$folder" --multi-page --section 1
