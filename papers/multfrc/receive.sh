# Arguments: our program, the latency.
cd "$(dirname "$0")" || exit 1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=testbed \
    -keyout key.pem -out cert.pem || exit 1
openssl x509 -in cert.pem -outform DER | sha256sum | cut -d ' ' -f 1 > fingerprint.new && mv fingerprint.new fingerprint
exec "$1" receive --quiet --listen 0.0.0.0:9000 --output udp://127.0.0.1:6000 --cert cert.pem --key key.pem \
    --latency "$2" --stats receive.jsonl
