const assert = require('node:assert')
const { count } = require('../words.js')

it('counts words', () => assert.equal(count('one two  three'), 3))
it('counts none in nothing', () => assert.equal(count(''), 0))
