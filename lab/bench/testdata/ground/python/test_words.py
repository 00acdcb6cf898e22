import unittest

import words


class Words(unittest.TestCase):
    def test_count(self):
        self.assertEqual(words.count("one two  three"), 3)

    def test_nothing(self):
        self.assertEqual(words.count(""), 0)
