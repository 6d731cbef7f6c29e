//! A crate's modules, what each of them names, and which file defines it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, UseTree, Visibility};

/// A file of the crate.
pub type FileId = usize;
/// A module of the crate.
pub(crate) type ModuleId = usize;

/// The tree of modules of one crate.
pub struct Crate {
    files: Vec<PathBuf>,
    /// The first one is the root.
    pub(crate) modules: Vec<Module>,
}

/// A module: a file, or a part of one.
pub(crate) struct Module {
    pub(crate) file: FileId,
    pub(crate) items: Vec<Item>,
    parent: Option<ModuleId>,
    names: HashMap<String, Vec<Named>>,
    globs: Vec<Vec<String>>,
}

/// What a name means where it stands.
#[derive(Clone)]
enum Named {
    Child(ModuleId),
    Item(FileId),
    Imported(Vec<String>),
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Module(ModuleId),
    Item(FileId),
}

/// A file cannot be read, or is no Rust.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Read(io::Error),
    Parse(syn::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.cause {
            Cause::Read(error) => error.fmt(f),
            Cause::Parse(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// Imports of imports are followed so far, for two may name each other.
const DEEPEST_IMPORT: u32 = 16;

impl Crate {
    /// Reads the crate whose root file is `root`, without its tests.
    ///
    /// # Errors
    /// A file that cannot be read, or is no Rust.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        let mut tree = Self { files: Vec::new(), modules: Vec::new() };
        let folder = root.parent().unwrap_or(Path::new("")).to_path_buf();
        tree.read_file(root, &folder, None)?;
        Ok(tree)
    }

    /// Where a file lies.
    #[must_use]
    pub fn path(&self, file: FileId) -> &Path {
        &self.files[file]
    }

    /// A file as a module; its children's files lie in `folder`.
    fn read_file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, ReadError> {
        let fail = |cause| ReadError { path: path.to_path_buf(), cause };
        let text = fs::read_to_string(path).map_err(|error| fail(Cause::Read(error)))?;
        let code = syn::parse_file(&text).map_err(|error| fail(Cause::Parse(error)))?;
        self.files.push(path.to_path_buf());
        self.add(self.files.len() - 1, code.items, folder, parent)
    }

    fn add(
        &mut self,
        file: FileId,
        items: Vec<Item>,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, ReadError> {
        let id = self.modules.len();
        self.modules.push(Module {
            file,
            items: Vec::new(),
            parent,
            names: HashMap::new(),
            globs: Vec::new(),
        });
        let mut own = Vec::new();
        for item in items {
            if is_test(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let child = self.child(module, file, folder, id)?;
                    self.modules[id].names.entry(name).or_default().push(Named::Child(child));
                }
                Item::Use(import) => {
                    self.modules[id].import(Vec::new(), &import.tree);
                    own.push(Item::Use(import));
                }
                item => {
                    if let Some(name) = defined(&item) {
                        self.modules[id].names.entry(name).or_default().push(Named::Item(file));
                    }
                    own.push(item);
                }
            }
        }
        self.modules[id].items = own;
        Ok(id)
    }

    fn child(
        &mut self,
        module: ItemMod,
        file: FileId,
        folder: &Path,
        parent: ModuleId,
    ) -> Result<ModuleId, ReadError> {
        let name = module.ident.to_string();
        let inner = folder.join(&name);
        if let Some((_, items)) = module.content {
            return self.add(file, items, &inner, Some(parent));
        }
        // A `path` goes from the folder in which the file with the `mod` lies.
        if let Some(path) = path_attribute(&module.attrs) {
            let path = self.files[file].with_file_name(path);
            let inner = path.parent().unwrap_or(Path::new("")).to_path_buf();
            return self.read_file(&path, &inner, Some(parent));
        }
        let beside = folder.join(format!("{name}.rs"));
        let path = if beside.exists() { beside } else { inner.join("mod.rs") };
        self.read_file(&path, &inner, Some(parent))
    }

    /// Where a path leads that is written in a module.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Found> {
        self.follow(from, path, 0)
    }

    fn follow(&self, from: ModuleId, path: &[String], depth: u32) -> Vec<Found> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let mut found = match first.as_str() {
            "crate" => vec![Found::Module(0)],
            "self" => vec![Found::Module(from)],
            "super" => self.modules[from].parent.map(Found::Module).into_iter().collect(),
            name => self.look_up(from, name, depth),
        };
        while let Some((name, after)) = rest.split_first() {
            found = found
                .into_iter()
                .flat_map(|found| match found {
                    // What stands behind an item is its variant, constant or function.
                    Found::Item(_) => vec![found],
                    Found::Module(module) if name == "super" => {
                        self.modules[module].parent.map(Found::Module).into_iter().collect()
                    }
                    Found::Module(module) => self.look_up(module, name, depth),
                })
                .collect();
            rest = after;
        }
        found
    }

    fn look_up(&self, module: ModuleId, name: &str, depth: u32) -> Vec<Found> {
        if depth > DEEPEST_IMPORT {
            return Vec::new();
        }
        let module_names = &self.modules[module];
        let mut found = Vec::new();
        for named in module_names.names.get(name).into_iter().flatten() {
            match named {
                Named::Child(child) => found.push(Found::Module(*child)),
                Named::Item(file) => found.push(Found::Item(*file)),
                // An import of a crate's name, as `use units;`, would ask for itself.
                Named::Imported(path) if path.len() == 1 && path[0] == name => {}
                Named::Imported(path) => found.extend(self.follow(module, path, depth + 1)),
            }
        }
        if found.is_empty() {
            for glob in &module_names.globs {
                for place in self.follow(module, glob, depth + 1) {
                    if let Found::Module(place) = place
                        && place != module
                    {
                        found.extend(self.look_up(place, name, depth + 1));
                    }
                }
            }
        }
        found
    }
}

impl Module {
    fn import(&mut self, mut path: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(path, &part.tree);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(path.clone(), tree);
                }
            }
            UseTree::Glob(_) => self.globs.push(path),
            UseTree::Name(name) if name.ident == "self" => {
                let name = path.last().cloned().unwrap_or_default();
                self.names.entry(name).or_default().push(Named::Imported(path));
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.names.entry(name.ident.to_string()).or_default().push(Named::Imported(path));
            }
            UseTree::Rename(renamed) => {
                if renamed.ident != "self" {
                    path.push(renamed.ident.to_string());
                }
                self.names.entry(renamed.rename.to_string()).or_default().push(Named::Imported(path));
            }
        }
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &attribute.meta.require_name_value().ok()?.value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}

/// Whether a `use` hands on to others.
pub(crate) fn hands_on(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// Whether something is there for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
