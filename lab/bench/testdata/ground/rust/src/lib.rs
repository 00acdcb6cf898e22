/// The number of words in a text.
pub fn count(text: &str) -> usize {
    plain_words::words(text).values().sum()
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts() {
        assert_eq!(count("one two  two"), 3);
    }

    #[test]
    fn nothing() {
        assert_eq!(count(""), 0);
    }
}
