#!/usr/bin/env bash
# Reports which system packages of some tests are missing, and why they are needed. Then:
#   tests/system_packages.sh            installs them, with sudo unless run by root
#   tests/system_packages.sh --if-free  installs them only if no password is needed: in CI, or as root without a
#                                       terminal. Otherwise it prints the command, and those tests are skipped.
set -euo pipefail

packages=()
lines=()

need() { # PROGRAM PACKAGES WHY
	if ! command -v "$1" >/dev/null; then
		packages+=($2)
		lines+=("  $2: $3")
	fi
}

if [ -z "${CHROMIUM:-}" ]; then
	need chromium "chromium fonts-liberation" "the tests of the checkout, the account, the demo shop and pay.js drive a real browser"
fi
need php "php-cli" "the tests run the PHP programs of docs/receivers and docs/signing"
need strace "strace" "the tests of a failing disk put errors into fsync with it"
need hledger "hledger" "the tests of the exports for accounting let hledger check the journals"
need bean-check "beancount" "the tests of the exports for accounting let beancount check the ledgers"
[ ${#packages[@]} -gt 0 ] || exit 0

as=""
[ "$(id -u)" = 0 ] || as="sudo "
install="${as}apt-get install --yes --no-install-recommends ${packages[*]}"
echo "Some tests need system packages that are missing here:"
printf '%s\n' "${lines[@]}"

if ! command -v apt-get >/dev/null; then
	echo "Install them with this machine's package manager. Until then those tests are skipped and counted."
	exit 0
fi
if [ "${1:-}" = --if-free ]; then
	free=
	[ "$(id -u)" = 0 ] && [ ! -t 0 ] && free=yes
	[ -n "${CI:-}" ] && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; } && free=yes
	if [ -z "$free" ]; then
		echo "Nothing was installed. \`make test-system\` does it, by: ${as}apt-get update && $install"
		echo "Until then those tests are skipped and counted."
		exit 0
	fi
fi
echo "Installing them: ${as}apt-get update && $install"
export DEBIAN_FRONTEND=noninteractive
${as}apt-get -qq update
$install >/dev/null
