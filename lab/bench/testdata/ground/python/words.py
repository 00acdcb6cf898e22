import plain_words


def count(text):
    return len(plain_words.split(text))
