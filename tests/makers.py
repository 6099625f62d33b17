"""The vendors by their names, and as HAMi's scheduler knows them, by its words."""

from hami_mock.vendors import VENDORS

BY_NAME = {vendor.name: vendor for vendor in VENDORS}
BY_WORD = {word: chip for vendor in VENDORS for word, chip in vendor.chips.items()}

NVIDIA = BY_NAME["nvidia"]
CAMBRICON = BY_NAME["cambricon"]
ILUVATAR = BY_NAME["iluvatar"]
ASCEND = BY_NAME["ascend"]
HYGON = BY_NAME["hygon"]
METAX = BY_NAME["metax"]
METAX_GPU = BY_NAME["metax-gpu"]
ENFLAME = BY_NAME["enflame"]
MTHREADS = BY_NAME["mthreads"]
AWS_NEURON = BY_NAME["awsneuron"]
AMD = BY_NAME["amd"]
VASTAI = BY_NAME["vastai"]
