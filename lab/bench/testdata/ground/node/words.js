/** @param {string} text */
exports.count = (text) => text.split(/\s+/).filter(Boolean).length
