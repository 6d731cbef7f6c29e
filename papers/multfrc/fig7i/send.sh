# Arguments: our program, the latency, the receiver, the scheme.
cd "$(dirname "$0")" || exit 1
until [ -e fingerprint ]; do sleep 0.1; done
exec "$1" send --quiet --to "$3:9000" --input udp://127.0.0.1:5000 --fingerprint "$(cat fingerprint)" --scheme "$4" \
    --latency "$2" --stats send.jsonl
