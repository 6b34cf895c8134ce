#!/bin/sh
# Writes new random credentials into the folder `secrets` beside this file, one file for each, and keeps those that exist.
#
#   deploy/make-secrets.sh                     for deploy/compose.yaml
#   deploy/make-secrets.sh callboard-redis     for deploy/kubernetes: the argument is the name of Redis' host
#
# Containers run as users of their own and must read the files, so the folder, and not the files, keeps other users out.
set -eu
host=${1:-redis}
folder=$(dirname "$0")/secrets
umask 022
[ -d "$folder" ] || mkdir -m 700 "$folder"

random() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
write() { [ -e "$folder/$1" ] || printf '%s\n' "$2" > "$folder/$1"; }

for name in secret audit-key metrics-token redis-password grafana-password; do write "$name" "$(random)"; done
write admin-token "ops=$(random)"
password=$(cat "$folder/redis-password")
write redis-auth.conf "requirepass $password"
write redis-url "redis://:$password@$host:6379"
