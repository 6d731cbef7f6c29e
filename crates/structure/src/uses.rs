//! What the code of each file uses of the others.

use std::collections::HashSet;
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Macro, PatIdent, UseTree};

use crate::modules::{Crate, FileId, Found, ModuleId, hands_on};

/// A file uses an item of another one.
#[derive(Debug, PartialEq, Eq)]
pub struct Used {
    /// The file that uses.
    pub from: FileId,
    /// The file that defines.
    pub to: FileId,
    /// The name as it is written where it is used.
    pub name: String,
}

/// All uses of one file's items by another one.
#[must_use]
pub fn uses(tree: &Crate) -> Vec<Used> {
    let mut found = Vec::new();
    for (id, module) in tree.modules.iter().enumerate() {
        for item in &module.items {
            let mut bound = Bound::default();
            bound.visit_item(item);
            Walker { tree, module: id, bound: bound.0, found: &mut found }.visit_item(item);
        }
    }
    found
}

struct Walker<'a> {
    tree: &'a Crate,
    module: ModuleId,
    /// The variables of the item, which may be called what something in the module is called.
    bound: HashSet<String>,
    found: &'a mut Vec<Used>,
}

impl Walker<'_> {
    fn note(&mut self, path: &[String]) {
        if let [name] = path
            && self.bound.contains(name)
        {
            return;
        }
        let from = self.tree.modules[self.module].file;
        for found in self.tree.resolve(self.module, path) {
            if let Found::Item(to) = found
                && to != from
            {
                self.found.push(Used { from, to, name: path.join("::") });
            }
        }
    }

    fn note_import(&mut self, mut path: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.note_import(path, &part.tree);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_import(path.clone(), tree);
                }
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.note(&path);
            }
            UseTree::Rename(renamed) => {
                path.push(renamed.ident.to_string());
                self.note(&path);
            }
            // What comes through a glob is noted where it is named.
            UseTree::Glob(_) => {}
        }
    }

    /// A macro's arguments are no syntax yet: each row of names with colons between them may be a path.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while colons(&mut tokens) {
                        match tokens.next() {
                            Some(TokenTree::Ident(next)) => path.push(next.to_string()),
                            Some(TokenTree::Group(group)) => self.note_tokens(group.stream()),
                            _ => break,
                        }
                    }
                    self.note(&path);
                }
                _ => {}
            }
        }
    }
}

/// The variables that patterns bind.
#[derive(Default)]
struct Bound(HashSet<String>);

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        // What begins with a capital is a constant or a unit.
        let name = pattern.ident.to_string();
        if name.starts_with(|first: char| first.is_lowercase() || first == '_') {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

/// Takes two colons, if they come next.
fn colons(tokens: &mut Peekable<IntoIter>) -> bool {
    let mut colon =
        || tokens.next_if(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':')).is_some();
    colon() && colon()
}

impl<'ast> Visit<'ast> for Walker<'_> {
    /// `#[command]` is a word for a macro, not the function of that name.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item(&mut self, item: &'ast Item) {
        // Modules are walked by themselves.
        if !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        if !hands_on(&import.vis) {
            self.note_import(Vec::new(), &import.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.note_tokens(call.tokens.clone());
    }
}
