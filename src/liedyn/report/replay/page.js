// Pieces of the page.

const $ = (id) => document.getElementById(id);
const rgb = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);

// names as people may see them: what does not print, or turns the direction of writing, as an escape
const printed = (text) => String(text).replace(/\p{C}/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

const rounded = (x, digits) => x.toFixed(digits).replace(/^-(0\.0*)$/, "$1");      // without negative zero

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  for (const key of ["textContent", "title"]) if (key in properties) node[key] = printed(properties[key]);
  node.append(...children);
  return node;
}
