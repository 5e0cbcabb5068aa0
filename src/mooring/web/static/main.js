// Where the page starts.
import { render } from "preact";
import { App } from "mooring/app";
import { html } from "mooring/html";

const page = document.getElementById("page");
page.replaceChildren();
render(html`<${App} />`, page);
