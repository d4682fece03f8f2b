//! The table: title, floor, ours, ratio, budget, and whether the budget was met.

/// The unit of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    Count,
    PerSecond,
}

/// The limit of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Budget {
    /// This many times the floor.
    Ratio(f64),
    /// This value.
    AtMost(f64),
}

/// One row.
#[must_use = "a row is printed by `Table::add`"]
pub(crate) struct Row {
    work: String,
    unit: Unit,
    floor: Option<f64>,
    ours: f64,
    budget: Option<Budget>,
}

impl Row {
    pub(crate) fn new(work: impl Into<String>, unit: Unit, ours: f64) -> Self {
        Self { work: work.into(), unit, floor: None, ours, budget: None }
    }

    pub(crate) fn seconds(work: impl Into<String>, ours: f64) -> Self {
        Self::new(work, Unit::Seconds, ours)
    }

    pub(crate) fn floor(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self
    }

    /// Sets the budget to this many times the floor.
    pub(crate) fn within(mut self, ratio: f64) -> Self {
        self.budget = Some(Budget::Ratio(ratio));
        self
    }

    /// Sets the budget to this value.
    pub(crate) fn at_most(mut self, limit: f64) -> Self {
        self.budget = Some(Budget::AtMost(limit));
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.ours / floor)
    }

    fn is_met(&self) -> Option<bool> {
        match self.budget? {
            // The rounded ratio counts, as it is printed: 1.30 meets 1.3.
            Budget::Ratio(most) => {
                self.ratio().map(|ratio| (ratio * 100.0).round() / 100.0 <= most)
            }
            Budget::AtMost(most) => Some(self.ours <= most),
        }
    }
}

/// Prints rows and counts their budgets.
#[derive(Default)]
pub(crate) struct Table {
    missed: Vec<String>,
    budgets: usize,
}

impl Table {
    pub(crate) fn head(&self) {
        println!(
            "| {:<73} | {:>9} | {:>9} | {:>6} | {:>8} | {:<6} |",
            "work", "floor", "ours", "ratio", "budget", ""
        );
        println!(
            "|:{:-<73}-|-{:->9}:|-{:->9}:|-{:->6}:|-{:->8}:|:{:-<6}-|",
            "", "", "", "", "", ""
        );
    }

    pub(crate) fn add(&mut self, row: Row) {
        let text = |figure: Option<f64>| figure.map_or(String::new(), |it| show(row.unit, it));
        let ratio = row.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let budget = match row.budget {
            None => String::new(),
            Some(Budget::Ratio(most)) => format!("{most}x"),
            Some(Budget::AtMost(most)) => show(row.unit, most),
        };
        let verdict = match row.is_met() {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        println!(
            "| {:<73} | {:>9} | {:>9} | {ratio:>6} | {budget:>8} | {verdict:<6} |",
            row.work,
            text(row.floor),
            text(Some(row.ours)),
        );
        self.budgets += usize::from(row.is_met().is_some());
        if row.is_met() == Some(false) {
            self.missed.push(row.work);
        }
    }

    pub(crate) fn foot(&self) {
        let met = self.budgets - self.missed.len();
        println!("\n{met} of {} budgets met", self.budgets);
        for work in &self.missed {
            println!("missed: {work}");
        }
    }
}

/// Formats a figure with three digits and its unit.
pub(crate) fn show(unit: Unit, figure: f64) -> String {
    let (scaled, unit) = match unit {
        Unit::Seconds if figure < 1e-3 => (figure * 1e6, " us"),
        Unit::Seconds if figure < 1.0 => (figure * 1e3, " ms"),
        Unit::Seconds => (figure, " s"),
        Unit::Bytes if figure < 1024.0 => (figure, " B"),
        Unit::Bytes if figure < 1024.0 * 1024.0 => (figure / 1024.0, " KiB"),
        Unit::Bytes => (figure / 1024.0 / 1024.0, " MiB"),
        Unit::Count => (figure, ""),
        Unit::PerSecond if figure >= 1e6 => (figure / 1e6, " M/s"),
        Unit::PerSecond if figure >= 1e3 => (figure / 1e3, " k/s"),
        Unit::PerSecond => (figure, " /s"),
    };
    match scaled {
        it if it >= 100.0 || it == it.round() => format!("{it:.0}{unit}"),
        it if it >= 10.0 => format!("{it:.1}{unit}"),
        it => format!("{it:.2}{unit}"),
    }
}
