#!/bin/sh
# Starts Canopy from the folder that this archive was unpacked into: ./canopy the window, ./canopy-cli the command line.
here=$(dirname -- "$(readlink -f -- "$0")")
program=$(basename -- "$0")
[ -x "$here/bin/$program" ] || program=canopy
version=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p')
oldest=$(printf '%s\n%s\n' "@GLIBC@" "$version" | sort -V | head -n 1)
if [ "$oldest" != "@GLIBC@" ]; then
  echo "canopy: this system has ${version:+glibc }${version:-no glibc}; @GLIBC@ or later is needed (Debian 12, Ubuntu 22.10, Fedora 37 or later)." >&2
  exit 1
fi
# Where the certificates of authorities are, which fetching models needs, differs from one distribution to another.
if [ -z "${SSL_CERT_FILE:-}" ]; then
  for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem \
    /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/ssl/cert.pem; do
    if [ -r "$file" ]; then
      export SSL_CERT_FILE="$file"
      break
    fi
  done
fi
exec "$here/bin/$program" "$@"
