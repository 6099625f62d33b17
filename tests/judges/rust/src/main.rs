//! Prints what the crate nvml-wrapper sees: a line for each card, its fields parted by tabs.

use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::{error::NvmlError, Nvml};

fn main() -> Result<(), NvmlError> {
    let nvml = Nvml::init()?;
    for index in 0..nvml.device_count()? {
        let card = nvml.device_by_index(index)?;
        let memory = card.memory_info()?;
        let rates = card.utilization_rates()?;
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            card.index()?,
            card.uuid()?,
            card.name()?,
            memory.total,
            memory.used,
            rates.gpu,
            card.power_usage()?,
            card.temperature(TemperatureSensor::Gpu)?,
        );
        // What older drivers lack, and what other structs are read for: it only has to answer.
        card.architecture()?;
        card.pci_info()?;
        card.num_cores()?;
        card.running_compute_processes()?;
        card.cuda_compute_capability()?;
        assert_eq!(nvml.device_by_uuid(card.uuid()?)?.index()?, index);
    }
    Ok(())
}
