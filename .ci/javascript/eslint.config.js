// The report's JavaScript. Text from a user's file must stay text, so whatever parses a string as markup or code is refused.

import js from "@eslint/js";
import globals from "globals";

const NO_MARKUP = "Build elements with h() and svg() of dom.js: text from a file must never become markup.";

export default [
  {ignores: ["**/vendor/**"]},
  {
    files: ["**/*.js"],
    ...js.configs.recommended,
    languageOptions: {
      ecmaVersion: 2024,
      sourceType: "module",
      globals: {...globals.browser, Plot: "readonly"},
    },
    linterOptions: {reportUnusedDisableDirectives: "error"},
    rules: {
      ...js.configs.recommended.rules,
      eqeqeq: "error",
      "no-control-regex": "off", // dom.js replaces control characters on purpose
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-shadow": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "createContextualFragment"].map((property) => ({
          property,
          message: NO_MARKUP,
        })),
        {object: "document", property: "write", message: NO_MARKUP},
      ],
    },
  },
  {
    files: ["**/assets/*.js"],
    languageOptions: {sourceType: "script"},
  },
];
