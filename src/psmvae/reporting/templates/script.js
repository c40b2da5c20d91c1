// Adds search, sorting, tabs, a choice of figures, dark mode and copying to a report that is
// complete without them. `root` is the document or a shadow root; nothing outside it is touched.
const connect = (root) => {
  const report = root.querySelector(".psm-report");
  const all = (selector, within = report) => [...within.querySelectorAll(selector)];
  const byId = (id) => root.getElementById(id);
  let serial = 0;
  const make = (tag, properties = {}, attributes = {}) => {
    const element = Object.assign(document.createElement(tag), properties);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const identified = (element) => {
    element.id ||= `psm-made-${(serial += 1)}`;
    return element.id;
  };

  // Links within the report: a shadow root has no fragments of its own.
  const follow = (event) => {
    const link = event.target.closest?.("a[href^='#']");
    const target = link && byId(link.getAttribute("href").slice(1));
    if (!target) return;
    if (root !== document) event.preventDefault();
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  };

  // Tabs: the headings of the panels become the tabs.
  const addTabs = (group) => {
    const panels = all(":scope > .psm-panel", group);
    if (panels.length < 2) return;
    const list = make("div", { className: "psm-tablist" }, { role: "tablist", "aria-label": group.dataset.label });
    const tabs = panels.map((panel) => {
      const heading = panel.querySelector("h3");
      const tab = make("button", { type: "button", textContent: heading.textContent }, {
        role: "tab", "aria-controls": identified(panel),
      });
      heading.classList.add("psm-hidden");
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", identified(tab));
      panel.tabIndex = 0;
      list.append(tab);
      return tab;
    });
    const select = (chosen, focus) => {
      tabs.forEach((tab, k) => {
        tab.setAttribute("aria-selected", String(k === chosen));
        tab.tabIndex = k === chosen ? 0 : -1;
        panels[k].hidden = k !== chosen;
      });
      if (focus) tabs[chosen].focus();
    };
    tabs.forEach((tab, k) => {
      tab.addEventListener("click", () => select(k, true));
      tab.addEventListener("keydown", (event) => {
        const n = tabs.length;
        const next = { ArrowRight: (k + 1) % n, ArrowLeft: (k + n - 1) % n, Home: 0, End: n - 1 }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        select(next, true);
      });
    });
    group.prepend(list);
    select(0, false);
  };

  // One figure of several, by a list.
  const addChoice = (group) => {
    const choices = all(":scope > .psm-choice", group);
    if (choices.length < 2) return;
    const select = make("select");
    choices.forEach((choice, k) => select.append(make("option", { value: k, textContent: choice.dataset.label })));
    const box = make("div", { className: "psm-choose" });
    box.append(make("label", { textContent: group.dataset.label, htmlFor: identified(select) }), select);
    const show = () => choices.forEach((choice, k) => { choice.hidden = k !== Number(select.value); });
    select.addEventListener("change", show);
    group.prepend(box);
    show();
  };

  // Sorting: numbers by data-value, names as text; cells without a value stay last.
  const addSorting = (table) => {
    const heads = all("thead th", table);
    const body = table.tBodies[0];
    if (body.rows.length < 2) return;
    const key = (row, k) => {
      const cell = row.cells[k];
      return "value" in cell.dataset ? cell.dataset.value : cell.textContent.trim();
    };
    const compare = (one, other) => {
      const [a, b] = [Number(one), Number(other)];
      return Number.isNaN(a) || Number.isNaN(b) ? one.localeCompare(other, undefined, { numeric: true }) : a - b;
    };
    heads.forEach((head, k) => {
      const button = make("button", { type: "button", className: "psm-sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [key(row, k), row]);
        rows.sort(([a], [b]) => (a === "") - (b === "") || (down ? -1 : 1) * compare(a, b));
        body.append(...rows.map(([, row]) => row));
      });
    });
  };

  // Search: everything about a column carries its name.
  const addSearch = (controls) => {
    const items = all("[data-column]");
    const names = new Set(items.map((item) => item.dataset.column));
    if (names.size < 2) return;
    const input = make("input", { type: "search", autocomplete: "off", spellcheck: false });
    const found = make("span", { className: "psm-found" }, { role: "status" });
    const box = make("div", { className: "psm-search" });
    box.append(make("label", { textContent: "Search columns", htmlFor: identified(input) }), input, found);
    const opened = new Set();
    const search = () => {
      const text = input.value.trim().toLocaleLowerCase();
      const hits = new Set([...names].filter((name) => name.toLocaleLowerCase().includes(text)));
      items.forEach((item) => { item.hidden = !hits.has(item.dataset.column); });
      all(".psm-more").forEach((more) => {
        const any = all("[data-column]", more).some((item) => !item.hidden);
        more.hidden = !any;
        if (text && any && !more.open) { more.open = true; opened.add(more); }
        if (!text && opened.delete(more)) more.open = false;
      });
      found.textContent = text ? `${hits.size} of ${names.size} columns` : "";
    };
    input.addEventListener("input", search);
    // keys typed here are no commands of a notebook
    input.addEventListener("keydown", (event) => event.stopPropagation());
    controls.append(box);
  };

  const addTheme = (controls) => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const button = make("button", { type: "button", className: "psm-button" });
    const isDark = () => (report.dataset.theme ? report.dataset.theme === "dark" : query.matches);
    const label = () => {
      button.textContent = "Dark mode";
      button.setAttribute("aria-pressed", String(isDark()));
    };
    button.addEventListener("click", () => {
      report.dataset.theme = isDark() ? "light" : "dark";
      label();
    });
    query.addEventListener("change", label);
    label();
    controls.append(button);
  };

  // Copying: the clipboard, or where it is not allowed the selected text.
  const addCopy = (source) => {
    const button = make("button", { type: "button", className: "psm-button", textContent: source.dataset.copy });
    const done = make("span", { className: "psm-copied" }, { role: "status" });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent.trim());
        done.textContent = "Copied.";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        done.textContent = document.execCommand?.("copy") ? "Copied." : "Selected: press Ctrl+C.";
      }
    });
    const box = make("p");
    box.append(button, done);
    source.after(box);
  };

  // Folded parts are printed, too.
  const folded = new Set();
  addEventListener("beforeprint", () => all("details:not([open])").forEach((part) => {
    folded.add(part);
    part.open = true;
  }));
  addEventListener("afterprint", () => {
    folded.forEach((part) => { part.open = false; });
    folded.clear();
  });

  const controls = make("div", { className: "psm-controls" });
  report.querySelector(".psm-contents").append(controls);
  addSearch(controls);
  addTheme(controls);
  all(".psm-tabs").forEach(addTabs);
  all(".psm-chooser").forEach(addChoice);
  all(".psm-sortable").forEach(addSorting);
  all("[data-copy]").forEach(addCopy);
  report.addEventListener("click", follow);
};

// The shadow root of a host element: made by the parser, or here from its template. A report is
// dark where the text around it is light.
const shadow = (id) => {
  const host = document.getElementById(id);
  const template = host.querySelector(":scope > template");
  if (!host.shadowRoot && template) {
    host.attachShadow({ mode: "open" }).append(template.content);
    template.remove();
  }
  const [red, green, blue] = getComputedStyle(host).color.match(/[\d.]+/g).map(Number);
  const light = 0.299 * red + 0.587 * green + 0.114 * blue > 140;
  host.shadowRoot.querySelector(".psm-report").dataset.theme = light ? "dark" : "light";
  return host.shadowRoot;
};
