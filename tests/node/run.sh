#!/bin/sh
# run.sh NPM_FOLDER: the tests of the Node package, with what npm installed there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
NODE_PATH="$1/node_modules"
export NODE_PATH
exec node --test "$here/rules.test.js" "$here/using.test.js" "$here/package.test.mjs"
