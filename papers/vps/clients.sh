# Three downloads, each over a connection of its own. Arguments: our program, the server, for how many seconds.
cd "$(dirname "$0")" || exit 1
for file in one four eight; do
    timeout "$3" "$1" fetch --quiet --http3-only --connections 1 --cacert cert.pem --stats $file.jsonl \
        -o - "https://$2/$file" > /dev/null &
done
wait
