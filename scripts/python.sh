# Sourced by the other scripts: sets $python to a Python of version 3.11 or newer, or says what is missing.
python=
for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 \
        && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "pcpd needs Python 3.11 or newer, and finds none on the PATH." >&2
    echo "Install it (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python)." >&2
    exit 1
fi
