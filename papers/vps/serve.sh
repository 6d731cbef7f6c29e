# Serves files that nobody gets to the end of. They are in /run, which goes away with the run. Argument: our program.
cd "$(dirname "$0")" && mkdir /run/files && truncate -s 1G /run/files/one /run/files/four /run/files/eight || exit 1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=testbed \
    -addext subjectAltName=IP:10.77.0.2 -keyout key.pem -out cert.pem || exit 1
exec "$1" serve /run/files --http 10.77.0.2:80 --h3 10.77.0.2:443 --cert cert.pem --key key.pem --congestion reno \
    --weights weights.toml
