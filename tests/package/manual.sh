# manual.sh PROGRAM MAN_FOLDER SHARE: all man pages and completions are installed where they are looked for.
set -eu
program=$1 man=$2 share=$3
for page in $("$program" manual) holdfast-faultproxy; do
  head -n 20 "$man/man1/$page.1" | grep -q "\.TH \"$page\" \"1\"" || { echo "$page: no page in $man" >&2; exit 1; }
done
"$program" completion bash | cmp - "$share/bash-completion/completions/holdfast"
"$program" completion zsh | cmp - "$share/zsh/site-functions/_holdfast"
"$program" completion fish | cmp - "$share/fish/vendor_completions.d/holdfast.fish"
