use std::collections::BTreeMap;

/// How often each word of a text occurs.
pub fn words(text: &str) -> BTreeMap<&str, usize> {
    let mut all = BTreeMap::new();
    for word in text.split_whitespace() {
        *all.entry(word).or_insert(0) += 1;
    }
    all
}
