#!/bin/sh
# types.sh NPM_FOLDER: the types of the Node package, tried on a program that uses them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec node "$1/node_modules/typescript/bin/tsc" --noEmit --strict --target es2022 --lib es2022,esnext.disposable --module commonjs \
  --esModuleInterop --typeRoots "$1/node_modules/@types" --types node "$here/use.ts"
