# shellcheck shell=bash disable=SC2034
# What the scripts share: where things are, how they speak, and what this machine has.
# Sourced by setup, build, test and quickstart; sets root, venv and, once find_* ran, nvcc and gpu.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${FERRY_VENV:-.venv}
case $venv in /*) ;; *) venv=$root/$venv ;; esac

say() { printf '%s\n' "$*"; }

# fail CODE WHAT HINT: one sentence on stderr, and the end.
fail() {
  printf '[%s] %s - %s\n' "$(basename "$0")" "$2" "$3" >&2
  exit "$1"
}

# The directory of the environment's packages; empty while there is none.
site_packages() {
  local dir
  for dir in "$venv"/lib/python3*/site-packages; do
    if [ -d "$dir" ]; then
      echo "$dir"
      return
    fi
  done
}

# Sets gpu to the model of the first usable NVIDIA GPU, driver to its version; both empty where there is
# none. CUDA 13 runs on compute capability 7.5 (Turing) and newer.
find_gpu() {
  gpu='' driver='' gpu_too_old=''
  command -v nvidia-smi >/dev/null || return 0
  local line cap
  line=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null |
    head -n 1) || return 0
  case $line in *,*,*) ;; *) return 0 ;; esac
  IFS=, read -r gpu driver cap <<<"$line"
  driver=${driver# }
  cap=${cap# }
  if [ "${cap//./}" -lt 75 ] 2>/dev/null; then
    gpu_too_old="$gpu (compute capability $cap)"
    gpu=''
  fi
}

# Sets nvcc to a CUDA 13 compiler: a toolkit's, else the environment's from PyPI, else empty.
find_nvcc() {
  local candidate
  nvcc=""
  for candidate in "${CUDA_HOME:-/nonexistent}/bin/nvcc" "$(command -v nvcc || true)" \
    /usr/local/cuda/bin/nvcc /usr/local/cuda-13*/bin/nvcc; do
    [ -x "$candidate" ] || continue
    if "$candidate" --version | grep -q 'release 13\.'; then
      nvcc=$candidate
      return
    fi
  done
  candidate=$(site_packages)/nvidia/cu13/bin/nvcc
  if [ -x "$candidate" ]; then nvcc=$candidate; fi
}

# fetch_sources DIR ARGUMENT...: pip downloads source packages into DIR as they are. It asks each for its name by
# the package's own builder, which would be fetched for that; another one of that name answers in its place.
fetch_sources() {
  local to=$1
  shift
  mkdir -p "$to/builder/scikit_build_core"
  : >"$to/builder/scikit_build_core/__init__.py"
  cat >"$to/builder/scikit_build_core/build.py" <<'PYTHON'
import email, os, shutil


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    with open('PKG-INFO') as file:
        facts = email.message_from_file(file)
    name = f"{facts['Name'].replace('-', '_')}-{facts['Version']}.dist-info"
    os.makedirs(os.path.join(directory, name))
    shutil.copy('PKG-INFO', os.path.join(directory, name, 'METADATA'))
    return name
PYTHON
  PYTHONPATH=$to/builder "$venv/bin/python" -m pip download -q --no-deps --no-binary :all: --no-build-isolation \
    --no-input --disable-pip-version-check -d "$to" "$@"
}
