// A button on each code sample that copies it. Without script the samples are there, only the buttons are not.
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
      // No clipboard, as on plain http away from localhost: what is selected can be copied by hand.
      getSelection().selectAllChildren(sample);
      said = "Selected";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  sample.replaceWith(box);
  box.append(button, sample);
}
