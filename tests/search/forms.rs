//! Searches find other forms of a word, in other languages than English.

use crate::tables::Tables;
use talktree::{Message, Result, Store};

/// Asserts which texts of a store a query finds, by their numbers.
#[track_caller]
fn finds(texts: &[&str], query: &str, expected: &[usize]) {
    let found = found(texts, query).unwrap();
    assert_eq!(found, expected, "{query}");
}

fn found(texts: &[&str], query: &str) -> Result<Vec<usize>> {
    let store = store(texts)?;
    let found = store.search(query).run()?;
    assert!(found.steps.is_empty(), "{query}: {:?}", found.steps);
    let mut numbers: Vec<usize> =
        found.hits.iter().map(|hit| hit.id.to_string().parse().unwrap()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn store(texts: &[&str]) -> Result<Store> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for (number, text) in texts.iter().enumerate() {
        chat.append(Message::user(*text).with_id(number.to_string()))?;
    }
    Ok(store)
}

const GERMAN: [&str; 3] = [
    "Die Häuser am Hafen sind alt und nicht teuer.",
    "Ich habe das Haus gesehen, aber es ist zu klein.",
    "Die Haut ist trocken, was kann ich für sie tun?",
];

#[test]
fn german_words_are_found_in_other_forms() {
    finds(&GERMAN, "Haus", &[0, 1]);
    finds(&GERMAN, "Häusern", &[0, 1]);
    finds(&GERMAN, "alte Häuser", &[0]);
    finds(&GERMAN, "Wo sind die Häusern?", &[0, 1]);
}

#[test]
fn french_words_are_found_in_other_forms() {
    let texts = [
        "La réunion nationale est dans une semaine, je ne sais pas où.",
        "Les journaux nationaux ne sont pas dans la boîte.",
        "Elle a mangé une pomme avec nous.",
    ];
    finds(&texts, "national", &[0, 1]);
    finds(&texts, "manger", &[2]);
    finds(&texts, "mangées", &[2]);
}

#[test]
fn spanish_words_are_found_in_other_forms() {
    let texts = [
        "Las canciones de este disco son muy buenas para mi hermano.",
        "La instalación no es posible en este momento, pero lo voy a hacer.",
        "¿Dónde está el coche de mi hermano?",
    ];
    finds(&texts, "canción", &[0]);
    finds(&texts, "bueno", &[0]);
    finds(&texts, "instalaciones", &[1]);
    finds(&texts, "hermanas", &[0, 2]);
}

#[test]
fn russian_words_are_found_in_other_forms() {
    let texts = ["Где мои новые книги?", "Я купил эту книгу вчера.", "Какой сегодня день?"];
    finds(&texts, "книга", &[0, 1]);
    finds(&texts, "новый", &[0]);
    finds(&texts, "сегодняшний", &[]);
}

#[test]
fn words_of_all_languages_are_compared_by_their_english_stems_too() {
    let texts = [
        "The generals were in the house, and they had a plan of their own.",
        "La solution générale est dans les notes que je n'ai pas.",
        "This is the general idea of it, and we will see if it works.",
    ];
    finds(&texts, "general", &[0, 1, 2]);
    finds(&texts, "what is the general of them", &[0, 1, 2]);
    // A French form is none of English.
    finds(&texts[1..2], "generaux", &[0]);
    finds(&[texts[0], texts[2]], "generaux", &[]);
}

#[test]
fn quoted_words_prefixes_alternatives_and_excluded_words_have_no_forms() {
    finds(&GERMAN, "\"Haus\"", &[1]);
    finds(&GERMAN, "Häuse*", &[0]);
    finds(&GERMAN, "Haus OR teuer", &[0, 1]);
    finds(&GERMAN, "Häuser -Haus", &[0]);
    finds(&GERMAN, "Häuser \"Haus\"", &[1]);
}

#[test]
fn a_form_counts_and_is_marked_as_the_word() -> Result<()> {
    let store = store(&["Die Häuser am Hafen sind alt, und nicht jedes ist teuer."])?;
    let found = store.search("Haus").run()?;
    assert_eq!(found.matched, talktree::search::Matched::All);
    assert!(found.hits[0].snippet.to_string().contains("Häuser"));
    assert_eq!(found.hits[0].snippet.marks.len(), 1);
    let relaxed = store.search("Wo war noch das Haus mit dem Dachboden?").run()?;
    assert_eq!((relaxed.hits.len(), relaxed.steps.len()), (1, 0));
    assert_eq!(relaxed.hits[0].snippet.marks.len(), 1);
    Ok(())
}

#[test]
fn a_compound_is_found_by_its_last_word() {
    let texts = [
        "Die Krankenversicherung ist teuer, und das ist nicht gut.",
        "Wo sind die Versicherungen von dem Haus?",
        "Der Versicherungsvertrag ist nicht da.",
        "Das Krankenhaus ist nicht weit von der Stadt.",
    ];
    finds(&texts, "Versicherung", &[0, 1]);
    finds(&texts, "Haus", &[1]);
}

#[test]
fn a_short_text_may_be_of_several_languages() {
    let texts = ["Ho letto due libri che non sono di mia sorella.", "Un libro aperto."];
    finds(&texts, "libro", &[0, 1]);
    finds(&texts, "libri", &[0, 1]);
}

#[test]
fn words_without_a_language_have_no_forms() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    for text in GERMAN {
        chat.append(Message::user(text))?;
    }
    assert_eq!(store.search("Haus").run()?.hits.len(), 2);
    assert!(Tables::of(&path).run("UPDATE term SET languages = 0") > 10);
    assert_eq!(store.search("Haus").run()?.hits.len(), 1);
    Ok(())
}
