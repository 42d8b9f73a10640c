//! The library `disk.c` under a process, and the file through which the driver controls it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A fault of a disk. Closed; the order is that of `disk.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A write fails, and nothing is written.
    WriteEio = 1,
    /// A write finds no room.
    WriteEnospc,
    /// A write meets a limit of the file's size.
    WriteEfbig,
    /// A write is done by half, and says so.
    WriteShort,
    /// A write is done by half, and fails.
    WriteTorn,
    /// A sync fails, and everything since the last one is lost.
    SyncEio,
    /// A read fails.
    ReadEio,
    /// A read returns half.
    ReadShort,
    /// One bit that is read is wrong, this time only.
    ReadRot,
    /// One bit that is written is wrong, for good.
    WriteRot,
    /// A write says that it is done, and is not.
    WriteLost,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 11] = [
        Self::WriteEio,
        Self::WriteEnospc,
        Self::WriteEfbig,
        Self::WriteShort,
        Self::WriteTorn,
        Self::SyncEio,
        Self::ReadEio,
        Self::ReadShort,
        Self::ReadRot,
        Self::WriteRot,
        Self::WriteLost,
    ];

    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WriteEio => "EIO on write",
            Self::WriteEnospc => "ENOSPC",
            Self::WriteEfbig => "EFBIG",
            Self::WriteShort => "short writes",
            Self::WriteTorn => "torn writes",
            Self::SyncEio => "EIO on sync",
            Self::ReadEio => "EIO on read",
            Self::ReadShort => "short reads",
            Self::ReadRot => "bit rot on read",
            Self::WriteRot => "bit rot on write",
            Self::WriteLost => "lost writes",
        }
    }

    /// True if the disk says nothing of it, so that it can do harm before it is noticed.
    pub const fn is_silent(self) -> bool {
        match self {
            Self::ReadRot | Self::WriteRot | Self::WriteLost => true,
            Self::WriteEio
            | Self::WriteEnospc
            | Self::WriteEfbig
            | Self::WriteShort
            | Self::WriteTorn
            | Self::SyncEio
            | Self::ReadEio
            | Self::ReadShort => false,
        }
    }

    /// True if nothing can be written while every operation has it.
    pub const fn stops_writes(self) -> bool {
        match self {
            Self::WriteEio
            | Self::WriteEnospc
            | Self::WriteEfbig
            | Self::WriteTorn
            | Self::SyncEio => true,
            Self::WriteShort
            | Self::ReadEio
            | Self::ReadShort
            | Self::ReadRot
            | Self::WriteRot
            | Self::WriteLost => false,
        }
    }
}

/// A set of files of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// The database.
    Database = 1,
    /// Its write-ahead log.
    Log,
    /// Both.
    Both,
}

impl Files {
    /// Every set.
    pub const ALL: [Self; 3] = [Self::Database, Self::Log, Self::Both];
}

/// The library, compiled for this machine.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
}

impl Library {
    /// Compiles the library into a folder. Fails without a C compiler, which also the build needs.
    pub fn compile(folder: &Path) -> Result<Self> {
        let source = folder.join("disk.c");
        std::fs::write(&source, include_str!("disk.c"))?;
        let path = folder.join("disk.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output = Command::new(&compiler)
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(&path)
            .arg(&source)
            .args(["-ldl", "-lpthread"])
            .output()
            .with_context(|| format!("the C compiler {} does not start", compiler.display()))?;
        if !output.status.success() {
            bail!(
                "disk.c does not compile: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(Self { path })
    }
}

/// A disk that fails on demand.
#[derive(Debug)]
pub struct Disk<'a> {
    library: &'a Library,
    path: PathBuf,
    control: File,
}

/// Place of the seed in the control file, and of the count of operations behind it.
const SEED_AT: u64 = 12;
const HITS_AT: u64 = 24;
const LENGTH: u64 = 32;

impl<'a> Disk<'a> {
    /// Creates a disk without faults; its control file is in this folder.
    pub fn new(library: &'a Library, folder: &Path) -> Result<Self> {
        let path = folder.join("faults");
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        control.set_len(LENGTH)?;
        Ok(Self {
            library,
            path,
            control,
        })
    }

    /// Puts the disk under a program that is started.
    pub fn under(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library.path)
            .env("COUNTERSIGN_FAULTS", &self.path);
    }

    /// Begins a fault, of one of so many operations on average.
    pub fn begin(&self, fault: Fault, files: Files, every: u32, seed: u32) -> Result<()> {
        self.control.write_all_at(&seed.to_ne_bytes(), SEED_AT)?;
        self.control.write_all_at(&every.to_ne_bytes(), 8)?;
        self.control
            .write_all_at(&(files as u32).to_ne_bytes(), 4)?;
        self.control
            .write_all_at(&(fault as u32).to_ne_bytes(), 0)?;
        Ok(())
    }

    /// Ends the fault.
    pub fn end(&self) -> Result<()> {
        self.control.write_all_at(&0_u32.to_ne_bytes(), 0)?;
        Ok(())
    }

    /// Returns the number of operations that had a fault.
    pub fn hits(&self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, HITS_AT)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
