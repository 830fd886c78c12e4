# pages.sh PYTHON REPOSITORY FOLDER: the pages of the Debian package, made in FOLDER, lead nowhere else.
set -eu
python=$1 repository=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
"$python" -B "$repository/packaging/pages.py" "$folder"
[ -s "$folder/README.md" ] && [ -s "$folder/docs/cli.md" ] && [ -s "$folder/examples/README.md" ]
exec "$python" -B "$repository/tests/package/links.py" "$folder"
