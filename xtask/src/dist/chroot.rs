//! The package in a fresh Debian: installed, used, upgraded, removed and purged. Needs root and `debootstrap`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::says;
use crate::step::{Step, root};

/// Release of Debian that is tried.
const RELEASE: &str = "bookworm";

/// Runs the life of the package in a chroot.
pub(super) fn check(out: &Path) -> Result<()> {
    ensure!(
        says("id", &["-u"])? == "0",
        "a chroot needs root; leave --chroot out"
    );
    let system = fresh()?;
    let package = package_in(out)?;
    let name = package.file_name().context("a package has a name")?;
    fs::copy(&package, system.join("root").join(name))?;
    let newer = newer(&package, &system)?;
    let inside = |step: &'static str, script: &str| {
        let words = [&system.display().to_string(), "/bin/sh", "-euxc", script];
        Step::program(step, "chroot", &words).run()
    };
    let name = name.to_string_lossy();
    inside("install", &INSTALL.replace("PACKAGE", &name))?;
    inside("use", USE)?;
    inside("upgrade", &UPGRADE.replace("PACKAGE", &newer))?;
    inside("remove", REMOVE)?;
    eprintln!("the package was installed, used, upgraded, removed and purged");
    Ok(())
}

/// Installs it: the account, the key and the folders are there, and with the right owners.
const INSTALL: &str = "
    apt-get update -q; apt-get install -q -y --no-install-recommends /root/PACKAGE
    getent passwd countersign
    test \"$(stat -c '%U %a' /var/lib/countersign)\" = 'countersign 700'
    test \"$(stat -c '%U %a' /etc/countersign/secrets)\" = 'root 600'
    grep -qE '^COUNTERSIGN_MASTER_KEY=[0-9a-f]{64}$' /etc/countersign/secrets
    test -s /usr/share/man/man1/countersign.1.gz
    test -s /usr/share/bash-completion/completions/countersign
    test -s /lib/systemd/system/countersign.service
    countersign --version; countersign-verify --version
";

/// Makes a call with the account and the settings of the service, and keeps a bundle of it.
const USE: &str = "
    set -a; . /etc/countersign/secrets; COUNTERSIGN_DATA=/var/lib/countersign
    as() { setpriv --reuid countersign --regid countersign --clear-groups \"$@\"; }
    cd /tmp
    as countersign --config /etc/countersign/countersign.toml config show >/dev/null
    as countersign --config /etc/countersign/countersign.toml call notes.add --args '{\"text\": \"kept\"}' --user ann
    as countersign --config /etc/countersign/countersign.toml verify --all
    sed -i '1i # changed by the operator' /etc/countersign/countersign.toml
    sha256sum /etc/countersign/secrets /etc/countersign/countersign.toml > /root/before
";

/// Upgrades it: settings and key are the operator's, the data is read, and the log verifies.
const UPGRADE: &str = "
    apt-get install -q -y --no-install-recommends /root/PACKAGE
    sha256sum -c /root/before
    set -a; . /etc/countersign/secrets; COUNTERSIGN_DATA=/var/lib/countersign
    as() { setpriv --reuid countersign --regid countersign --clear-groups \"$@\"; }
    cd /tmp
    as countersign --config /etc/countersign/countersign.toml call notes.list --user ann | grep kept
    as countersign --config /etc/countersign/countersign.toml verify --all
";

/// Removes and purges it: the programs go, the data and the key stay.
const REMOVE: &str = "
    apt-get remove -q -y countersign
    test ! -e /usr/bin/countersign
    test -e /etc/countersign/countersign.toml
    apt-get purge -q -y countersign
    test ! -e /etc/countersign/countersign.toml
    test -e /etc/countersign/secrets
    test -e /var/lib/countersign/log.pub
";

/// A fresh system. The downloaded packages are kept beside it.
fn fresh() -> Result<PathBuf> {
    let system = root().join("target/dist-chroot");
    if system.exists() {
        fs::remove_dir_all(&system)?;
    }
    let cache = root().join("target/dist-packages");
    fs::create_dir_all(&cache)?;
    if says("debootstrap", &["--version"]).is_err() {
        bail!("the chroot needs more: `apt-get install debootstrap`");
    }
    let cache = format!("--cache-dir={}", cache.display());
    let path = system.display().to_string();
    let words = ["--variant=minbase", &cache, RELEASE, &path];
    Step::program("chroot", "debootstrap", &words).run()?;
    Ok(system)
}

/// The package in the folder.
fn package_in(out: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(out)?.filter_map(Result::ok);
    let mut packages = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "deb"));
    packages.next().context("there is no package")
}

/// The same package as a later version, in the system; returns its name.
fn newer(package: &Path, system: &Path) -> Result<String> {
    let tree = root().join("target/dist-newer");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let (from, into) = (package.display().to_string(), tree.display().to_string());
    says("dpkg-deb", &["-R", &from, &into])?;
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("Version: "))
        .context("a package has a version")?;
    let later = format!("Version: {version}+later");
    let text = text.replacen(&format!("Version: {version}"), &later, 1);
    fs::write(&control, text)?;
    let name = "countersign_later.deb".to_owned();
    let to = system.join("root").join(&name).display().to_string();
    says("dpkg-deb", &["--root-owner-group", "--build", &into, &to])?;
    Ok(name)
}
