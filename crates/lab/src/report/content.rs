//! What a report says, apart from how it is shown: as pages of HTML, or as a PDF.

/// A part of the report: an overview, or a paper.
pub(crate) struct Chapter {
    /// Its name, that of its page without the ending.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What stands before its sections.
    pub intro: Vec<Block>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A section of a chapter: an experiment.
pub(crate) struct Section {
    /// Its name within the chapter.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// A piece of a chapter or section.
pub(crate) enum Block {
    /// The title of what follows.
    Heading(&'static str),
    /// Some sentences.
    Paragraph(Text),
    /// Items, one below the other.
    List(Vec<Text>),
    /// A plot as an SVG document.
    Figure(String),
    /// A table.
    Table(Table),
}

/// A table. Its first column tells its rows apart.
#[derive(Clone)]
pub(crate) struct Table {
    /// What stands above it.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, with a cell for every column.
    pub rows: Vec<Vec<Text>>,
    /// A last row of sums.
    pub foot: Option<Vec<Text>>,
}

/// A column of a table.
#[derive(Clone)]
pub(crate) struct Column {
    /// What stands at its head.
    pub head: String,
    /// Whether it has numbers: they stand at the right, each on a line.
    pub is_number: bool,
}

impl Column {
    /// A column of texts.
    pub fn text(head: &str) -> Self {
        Self { head: head.into(), is_number: false }
    }

    /// A column of numbers.
    pub fn number(head: &str) -> Self {
        Self { head: head.into(), is_number: true }
    }
}

/// Text in several styles.
#[derive(Clone, Default)]
pub(crate) struct Text(pub Vec<Span>);

/// A piece of text in a style.
#[derive(Clone)]
pub(crate) enum Span {
    /// Text.
    Words(String, Style),
    /// Text that leads to a place in the report.
    Link(String, Place),
    /// A new line begins.
    Break,
}

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As most of it.
    Plain,
    /// Of weight.
    Strong,
    /// What a computer reads.
    Code,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// Beside what matters.
    Small,
}

/// A place in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The chapter.
    pub chapter: String,
    /// The section; `None` for the chapter's beginning.
    pub section: Option<String>,
}

impl Text {
    /// Text in the usual style.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::default().and(text, Style::Plain)
    }

    /// More text in a style.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push(Span::Words(text.into(), style));
        self
    }

    /// Text that leads to a place.
    #[must_use]
    pub fn link(mut self, text: impl Into<String>, place: Place) -> Self {
        self.0.push(Span::Link(text.into(), place));
        self
    }

    /// More on a new line.
    #[must_use]
    pub fn on_a_new_line(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push(Span::Break);
        self.and(text, style)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}
