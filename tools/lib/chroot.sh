# Fresh systems of Debian releases in chroots, shared by tools/try_distribution and tools/try_package. Sourced behind
# setup.sh; needs root and the package debootstrap, and leaves everything in $trials, where a second trial of a release
# begins with its base system.

trials=${CANOPY_TRIALS:-/var/tmp/canopy-trials}

# make_base RELEASE: a base system (its folder is `base`), once, from the archive that this system's own apt is configured for.
make_base() {
  ((EUID == 0)) || die "a chroot needs root."
  install_packages debootstrap
  base=$trials/$1-base
  [[ ! -f $base.done ]] || return 0
  local archive recipe=/usr/share/debootstrap/scripts/$1
  archive=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' | sed -n 's/ main$//p' | head -1)
  [[ -n $archive ]] || die "apt is not configured for a Debian archive here."
  mkdir -p -- "$trials"
  say "Installing a base system of $1"
  rm -rf -- "$base"
  # A release younger than this debootstrap is installed as the newest one that it knows.
  [[ -e $recipe ]] || recipe=/usr/share/debootstrap/scripts/sid
  debootstrap --variant=minbase --include=ca-certificates,sudo "$1" "$base" "$archive" "$recipe" ||
    die "debootstrap could not install $1 (its message is above)."
  touch -- "$base.done"
}

# Whatever happens, nothing stays mounted: removing the folder would reach through.
leave_system() {
  local place
  for place in proc sys dev/shm dev; do umount -l "$system/$place" 2>/dev/null || true; done
}

# make_system RELEASE [NAME]: a copy of the base system (its folder is `system`) with a user `tester`, and with proxies,
# certificates and pip's index of this system.
make_system() {
  make_base "$1"
  system=$trials/${2:-$1}
  trap leave_system EXIT
  leave_system
  say "Copying the base system of $1"
  rm -rf -- "$system"
  cp -a -- "$base" "$system"
  local place
  for place in dev proc sys; do mount --rbind "/$place" "$system/$place"; done
  mount --make-rslave "$system/dev"
  mount --make-rslave "$system/sys"
  cp -L /etc/resolv.conf /etc/hosts "$system/etc/" 2>/dev/null || true
  cp -a /etc/apt/apt.conf.d/. "$system/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp -a /etc/apt/auth.conf.d/. "$system/etc/apt/auth.conf.d/" 2>/dev/null || true
  cp -aL /etc/ssl/certs/. "$system/etc/ssl/certs/" 2>/dev/null || true
  [[ ! -f /etc/pip.conf ]] || cp /etc/pip.conf "$system/etc/pip.conf"
  mkdir -m 1777 -- "$system/var/cache/canopy-ccache"
  echo 'tester ALL=(ALL) NOPASSWD:ALL' >"$system/etc/sudoers.d/tester"
  chroot "$system" useradd --create-home tester
}

# within USER COMMAND: in the system, as that user, in its checkout, where there is one, with what tells pip where its index is.
within() {
  local user=$1 home=/root
  shift
  [[ $user == root ]] || home=/home/$user
  local settings=(HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
    CCACHE_DIR=/var/cache/canopy-ccache CCACHE_UMASK=000 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$home")
  local name
  for name in $(compgen -e | grep -E '^(PIP_|https?_proxy$|no_proxy$|SSL_CERT_|REQUESTS_CA_)' || true); do
    settings+=("$name=${!name}")
  done
  chroot "$system" su "$user" -s /bin/bash -c "cd ~; [[ ! -d canopy ]] || cd canopy; env -i ${settings[*]@Q} $*"
}

# copy_checkout USER: the last commit of this checkout and what was downloaded for it into that user's home.
copy_checkout() {
  local home=$system/root cache=${CANOPY_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/canopy}
  [[ $1 == root ]] || home=$system/home/$1
  git -c safe.directory='*' clone -q -- "$root" "$home/canopy"
  # What was downloaded here is checked against its hash there all the same.
  mkdir -p -- "$home/.cache/canopy"
  cp -a -- "$cache/downloads" "$home/.cache/canopy/" 2>/dev/null || true
  chroot "$system" chown -R "$1:" "${home#"$system"}/canopy" "${home#"$system"}/.cache"
}
