# Arguments: our program, the latency, the receiver, the scheme and what else the sender is told.
cd "$(dirname "$0")" || exit 1
program=$1 latency=$2 receiver=$3 scheme=$4
shift 4
until [ -e fingerprint ]; do sleep 0.1; done
exec "$program" send --quiet --to "$receiver:9000" --input udp://127.0.0.1:5000 --fingerprint "$(cat fingerprint)" \
    --scheme "$scheme" --latency "$latency" --stats send.jsonl "$@"
