//! The file of a share: a line about the sweep, then a line for every finished run, in the order in which
//! they came.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Sweep, SweepError};
use crate::cache::this_program;
use crate::path_error::PathError;
use crate::share::Share;

/// What a share's file begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Digest of the sweep, its scenario and the traces.
    pub sweep: String,
    /// Digest of the program.
    pub program: String,
    /// Runs of all shares.
    pub runs: usize,
    /// Seeds of a point.
    pub seeds: usize,
    /// Names of what is varied.
    pub parameters: Vec<String>,
    /// Which share, from 1.
    pub share: usize,
    /// Of how many.
    pub of: usize,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Which run of the sweep, from 0.
    pub run: usize,
    /// The parameters' values.
    pub values: Vec<String>,
    /// What came of it.
    pub results: Vec<(String, Value)>,
}

impl Head {
    pub(super) fn new(sweep: &Sweep, share: Share) -> Self {
        Self {
            sweep: sweep.digest().into(),
            program: this_program(),
            runs: sweep.runs(),
            seeds: sweep.runs() / sweep.points().max(1),
            parameters: sweep.parameters().map(Into::into).collect(),
            share: share.number(),
            of: share.of(),
        }
    }

    /// What the whole is that it belongs to: all but which share it is.
    pub(super) fn whole(&self) -> Self {
        Self { share: 0, ..self.clone() }
    }
}

/// A share's file.
pub(super) struct Kept {
    pub head: Head,
    pub rows: BTreeMap<usize, Row>,
    /// Bytes until the end of the last whole line.
    length: usize,
}

/// Where the file of a share is.
pub(super) fn path(directory: &Path, share: Share) -> PathBuf {
    directory.join(format!("shard-{}-of-{}.jsonl", share.number(), share.of()))
}

/// Whether a file is named like that of a share.
pub(super) fn is_share(name: &str) -> bool {
    name.starts_with("shard-") && name.ends_with(".jsonl")
}

impl Kept {
    /// Reads a share's file; `None` when it has not even its first line. A last line that was not finished is
    /// none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, SweepError> {
        let text = fs::read(path).map_err(PathError::reading(path))?;
        let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let wrong = |line: usize, what: &dyn std::fmt::Display| SweepError::Kept {
            path: path.into(),
            what: format!("line {line}: {what}; remove the file and run this share again"),
        };
        let mut lines =
            text[..length].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
        let Some((_, first)) = lines.next() else { return Ok(None) };
        let head: Head = serde_json::from_slice(first).map_err(|error| wrong(1, &error))?;
        let Some(share) = Share::new(head.share, head.of) else {
            return Err(wrong(1, &"there is no such share"));
        };
        let mut rows = BTreeMap::new();
        for (index, line) in lines {
            let row: Row = serde_json::from_slice(line).map_err(|error| wrong(index + 1, &error))?;
            if row.run >= head.runs || !share.has(row.run) || row.values.len() != head.parameters.len() {
                return Err(wrong(index + 1, &format_args!("run {} is none of this share", row.run + 1)));
            }
            let run = row.run;
            if rows.insert(run, row).is_some() {
                return Err(wrong(index + 1, &format_args!("run {} is there twice", run + 1)));
            }
        }
        Ok(Some(Self { head, rows, length }))
    }
}

/// A share's file that rows are added to.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the file of a share, or begins it, and tells which runs it has. Nobody else can open it so until
    /// this one is dropped.
    pub(super) fn open(path: PathBuf, head: &Head) -> Result<(Self, BTreeMap<usize, Row>), SweepError> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(PathError::writing(&path))?;
        file.try_lock().map_err(|_| SweepError::Kept {
            path: path.clone(),
            what: "another process is at work on this share".into(),
        })?;
        let kept = Kept::read(&path)?;
        let (length, rows) = match kept {
            Some(kept) if kept.head != *head => {
                return Err(SweepError::Kept {
                    path,
                    what: "it was made from another sweep or scenario, or by another program; remove it, or \
                           name another --out"
                        .into(),
                });
            }
            Some(kept) => (kept.length as u64, kept.rows),
            None => (0, BTreeMap::new()),
        };
        file.set_len(length)
            .and_then(|()| file.seek(SeekFrom::Start(length)))
            .map_err(PathError::writing(&path))?;
        let mut journal = Self { file, path };
        if length == 0 {
            journal.add(head)?;
        }
        Ok((journal, rows))
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<(), SweepError> {
        let failed = PathError::writing(&self.path);
        let mut text = serde_json::to_vec(line).map_err(|error| failed(io::Error::from(error)))?;
        text.push(b'\n');
        Ok(self.file.write_all(&text).map_err(&failed)?)
    }
}
