#!/usr/bin/env bash
# Boots a machine whose process 1 is systemd, with cgroups of version 2 and the kernel of Debian 12, and
# runs in it what no container can try: the sentinel's unit as it is shipped, and memory.oom.group. QEMU
# emulates the machine, so no hardware support is needed; its root is a file system in memory, made by
# debootstrap. Needs root, on Debian for amd64. It takes about six minutes; the first run's
# downloads stay in ~/.cache/neli-boot.
set -euo pipefail
cd "$(dirname "$0")/../../.."

need=()
command -v qemu-system-x86_64 >/dev/null || need+=(qemu-system-x86)
command -v debootstrap >/dev/null || need+=(debootstrap)
command -v cpio >/dev/null || need+=(cpio)
if [ ${#need[@]} -gt 0 ]; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${need[@]}"
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/neli-boot
if [ ! -e "$cache/complete" ]; then
  rm -rf "$cache" && mkdir -p "$cache"
  debootstrap --variant=minbase --include=systemd,systemd-sysv bookworm "$cache/debian" >"$cache/debootstrap.log"
  (cd "$cache/debian" && rm -rf {usr/share/{doc,locale,man},var/{cache,lib/apt/lists}}/*)
  # In a chroot, as the machine that runs this need not be a Debian 12. The kernel alone, without an initrd of its own.
  kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
  (cd "$cache" && apt-get download -qq "$kernel" && dpkg-deb -x linux-image-*.deb kernel)
  touch "$cache/complete"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=$work/neli/cmd/neli
mkdir -p "$tests" "$work/neli/deploy"
cp -r deploy/systemd "$work/neli/deploy/"
CGO_ENABLED=0 go test -c -o "$tests/sentinel.test" ./internal/sentinel
(cd cmd/neli && CGO_ENABLED=0 go test -tags booted -c -o "$tests/neli.test" . && CGO_ENABLED=0 go build -o "$tests/neli" .)
cat >"$tests/run" <<'RUN'
#!/bin/sh
# The machine's network is loopback alone.
uname -r && systemctl --version | head -1
export NELI_BOOTED=1 NELI_TEST_BUILT=/neli/cmd/neli/neli
./sentinel.test -test.v -test.run 'OOMKiller|Frozen|PIDNamespaces|Execs|ReconnectsIsTheSame' &&
  ./neli.test -test.v -test.run '^TestUnderSystemd$' && echo BOOTED: PASSED
systemctl poweroff --force --force
RUN
chmod +x "$tests/run"
mkdir -p "$work/etc/systemd/system/multi-user.target.wants"
cat >"$work/etc/systemd/system/tests.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/neli/cmd/neli/run
WorkingDirectory=/neli/cmd/neli
Environment=HOME=/root
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
UNIT
ln -s /etc/systemd/system/tests.service "$work/etc/systemd/system/multi-user.target.wants/"

# The first root of a kernel cannot be left by pivot_root, which systemd needs for a unit's own mounts.
cat >"$work/first" <<'FIRST'
#!/bin/sh
mount -t tmpfs -o mode=755,size=2g root /mnt &&
  cp -ax /bin /etc /lib /lib64 /neli /root /sbin /usr /var /mnt &&
  mkdir /mnt/dev /mnt/proc /mnt/sys /mnt/run /mnt/tmp && chmod 1777 /mnt/tmp &&
  exec switch_root /mnt /lib/systemd/systemd
FIRST
chmod +x "$work/first"

# Two archives in a row are one file system.
for root in "$cache/debian" "$work"; do
  (cd "$root" && find . -print0 | cpio --null -o -H newc --quiet | gzip -1)
done >"$work.cpio"
trap 'rm -rf "$work" "$work.cpio"' EXIT
timeout 10m qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 3G -smp 2 -nographic -no-reboot -nodefaults -serial stdio \
  -kernel "$cache"/kernel/boot/vmlinuz-* -initrd "$work.cpio" \
  -append 'console=ttyS0 rdinit=/first systemd.show_status=0 loglevel=3 panic=-1' | tee "$work/said"
grep -q '^BOOTED: PASSED' "$work/said"
