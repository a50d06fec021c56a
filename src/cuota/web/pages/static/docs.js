// Adds a button to each code sample that copies it. Without scripts, the samples have no buttons.
for (const sample of document.querySelectorAll("main pre")) {
  const box = document.createElement("div");
  const button = document.createElement("button");
  box.className = "code";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(sample.innerText.replace(/\n$/, ""));
    } catch {
      // There is no clipboard, for example with plain http. Select the text, so that the reader can copy it by hand.
      getSelection().selectAllChildren(sample);
      said = "Selected";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  sample.replaceWith(box);
  box.append(button, sample);
}
